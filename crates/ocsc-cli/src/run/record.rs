//! The run log, RUN.jsonl: one [`Record`] per line, written while learning, read by `report` and by people's scripts.
//!
//! Every line holds every field in the same order, and `null` where one does not apply or is not finite, so that a log
//! loads as a table with fixed columns. Readers accept an absent field as `null` and ignore fields they do not know.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Longer than any record; a file of another kind may have no line ends at all.
pub(crate) const MAX_LINE: u64 = 1 << 16;

/// What a line of the log reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Event {
    /// The dictionary was updated.
    Step,
    /// All samples were seen once more.
    Pass,
    /// The run is over.
    End,
}

/// One line of the log. Counters and times are totals since the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What happened.
    pub(crate) event: Event,
    /// The current pass, or the finished one.
    pub(crate) pass: u64,
    /// Dictionary updates.
    pub(crate) step: u64,
    /// Samples coded.
    pub(crate) samples: u64,
    /// Wall time of learning, without evaluation.
    pub(crate) seconds: f64,
    /// Processor time of learning, over all threads.
    pub(crate) cpu_seconds: f64,
    /// Mean training objective of a sample, over the step or the pass.
    pub(crate) objective: Option<f64>,
    /// The worst relative duality gap of the codes behind `objective`.
    pub(crate) gap: Option<f64>,
    /// Mean number of non-zeros of a code.
    pub(crate) nonzeros: Option<f64>,
    /// Relative change of the dictionary in the last update.
    pub(crate) dictionary_change: Option<f64>,
    /// Mean objective of the test samples.
    pub(crate) test_objective: Option<f64>,
    /// Mean PSNR of the test samples, in dB.
    pub(crate) test_psnr: Option<f64>,
    /// The peak that PSNR refers to.
    pub(crate) psnr_peak: Option<f64>,
    /// The most memory the process has held.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// How far the update's last sweep found the dictionary from a stationary point (method `ocsc`): the norm of the
    /// projected gradient step, relative to the dictionary's.
    pub(crate) stationarity: Option<f64>,
    /// Filters that were unused and replaced (method `ocsc`), in the step or the pass.
    pub(crate) reseeded: Option<u64>,
    /// Time that learning waited for samples to be read.
    pub(crate) waiting_seconds: Option<f64>,
    /// Visits to samples that could not be used.
    pub(crate) skipped: Option<u64>,
    /// The samples that could not be used, each counted once.
    pub(crate) unusable: Option<u64>,
    /// The non-zeros as a share of the samples' observed values.
    pub(crate) nonzeros_share: Option<f64>,
    /// How many test samples were evaluated.
    pub(crate) test_samples: Option<u64>,
    /// Wall time of coding them.
    pub(crate) test_seconds: Option<f64>,
}

/// Reads a log. A last line without its newline, as a killed run leaves it, is ignored if it does not parse; any other
/// bad line is an error that names file and line.
pub(crate) fn read_records(path: &Path) -> Result<Vec<Record>> {
    let file = ocsc::file::open(path).with_context(|| format!("cannot open the run log {}", path.display()))?;
    let mut reader = BufReader::new(file);
    let mut records = vec![];
    let mut line = vec![];
    for number in 1.. {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read the run log {}", path.display()))? == 0 {
            break;
        }
        let short = (line.len() as u64) < MAX_LINE;
        ensure!(short, "{}, line {number}: expected one JSON record of a run, found a longer line", path.display());
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(record) => records.push(record),
            Err(_) if line.last() != Some(&b'\n') => break,
            Err(error) => {
                let place = format!("{}, line {number}", path.display());
                return Err(error).with_context(|| format!("{place}: expected one JSON record of a run"));
            }
        }
    }
    Ok(records)
}

/// The most memory this process has held, where the system tells (Linux: VmHWM).
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    ocsc::memory::peak().map(|bytes| bytes as u64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// Returns a line of a log for tests.
    pub(crate) fn record(event: Event, step: u64, objective: Option<f64>) -> Record {
        Record {
            event,
            pass: 1,
            step,
            samples: step,
            seconds: step as f64 * 0.1,
            cpu_seconds: step as f64 * 0.2,
            objective,
            gap: Some(0.01),
            nonzeros: Some(2500.5),
            dictionary_change: None,
            test_objective: None,
            test_psnr: None,
            psnr_peak: None,
            peak_rss_bytes: Some(1 << 33),
            stationarity: Some(0.1),
            reseeded: Some(0),
            waiting_seconds: Some(0.5),
            skipped: Some(2),
            unusable: Some(1),
            nonzeros_share: Some(0.25),
            test_samples: Some(4),
            test_seconds: Some(0.125),
        }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn round_trip_with_every_field_on_every_line() {
        let records = [record(Event::Step, 1, Some(0.1 + 0.2)), record(Event::End, 2, None)];
        let text: String = records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect();
        assert_eq!(read_records(file(&text).path()).unwrap(), records);
        let keys = "event pass step samples seconds cpu_seconds objective gap nonzeros dictionary_change \
                    test_objective test_psnr psnr_peak peak_rss_bytes stationarity reseeded waiting_seconds skipped unusable nonzeros_share test_samples test_seconds";
        let line = text.lines().next().unwrap();
        let places: Vec<_> = keys.split_whitespace().map(|k| line.find(&format!("\"{k}\":")).unwrap()).collect();
        assert!(places.is_sorted() && line.starts_with("{\"event\":\"step\"") && line.contains("\"test_psnr\":null"));
    }

    #[test]
    fn absent_fields_are_null_and_values_that_are_not_finite_too() {
        let text = r#"{"event":"pass","pass":1,"step":2,"samples":3,"seconds":1,"cpu_seconds":2,"later":[]}"#;
        let read = read_records(file(text).path()).unwrap();
        assert_eq!((read[0].event, read[0].objective, read[0].peak_rss_bytes), (Event::Pass, None, None));
        let text = serde_json::to_string(&record(Event::Step, 1, Some(f64::NAN))).unwrap();
        assert_eq!(read_records(file(&text).path()).unwrap()[0].objective, None);
    }

    #[test]
    fn a_cut_last_line_is_ignored_and_any_other_bad_line_is_named() {
        let good = serde_json::to_string(&record(Event::Step, 1, Some(1.0))).unwrap();
        for cut in [1, 20, good.len() - 1] {
            let log = file(&format!("{good}\n{good}\n{}", &good[..cut]));
            assert_eq!(read_records(log.path()).unwrap().len(), 2);
        }
        let log = file(&format!("{good}\n\n{}\n{good}\n", &good[..20]));
        let message = format!("{:#}", read_records(log.path()).unwrap_err());
        assert!(message.contains("line 3") && message.contains(log.path().to_str().unwrap()), "{message}");
        let log = file("{\"event\":\"dance\",\"pass\":1}\n");
        assert!(format!("{:#}", read_records(log.path()).unwrap_err()).contains("dance"));
        assert!(format!("{:#}", read_records(Path::new("no/such.jsonl")).unwrap_err()).contains("no/such.jsonl"));
        assert_eq!(read_records(file("").path()).unwrap(), []);
    }
}
