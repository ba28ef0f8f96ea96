//! Evidence that the system killed a process for want of memory: counters of the kernel and of this process's control group.

use std::path::{Path, PathBuf};

/// Files of lines `name number`, one of which counts the kills.
const KERNEL: &str = "/proc/vmstat";
const COUNT: &str = "oom_kill";

/// How many processes had been killed, by those who count.
pub(super) struct Kills(Vec<(PathBuf, u64)>);

impl Kills {
    pub(super) fn until_now() -> Kills {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Kills::in_files(std::iter::once(PathBuf::from(KERNEL)).chain(files(&groups)))
    }

    fn in_files(files: impl IntoIterator<Item = PathBuf>) -> Kills {
        Kills(files.into_iter().filter_map(|file| Some((count(&file)?, file))).map(|(n, file)| (file, n)).collect())
    }

    /// Whether anyone has counted more of them since.
    pub(super) fn are_more_now(&self) -> bool {
        self.0.iter().any(|(file, before)| count(file).is_some_and(|now| now > *before))
    }
}

/// The counters of the groups of a `/proc/PID/cgroup`, in both versions; where a group is mounted as the root, also there.
fn files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.events"),
            some if some.split(',').any(|name| name == "memory") => ("/sys/fs/cgroup/memory", "memory.oom_control"),
            _ => continue,
        };
        let root = Path::new(root);
        files.push(root.join(group.trim_start_matches('/')).join(file));
        files.push(root.join(file));
    }
    files.dedup();
    files
}

fn count(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(COUNT)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_rose_is_evidence() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("vmstat"), "nr_free 3\noom_kill 4\n").unwrap();
        std::fs::write(file("events"), "oom 9\noom_kill 0\noom_group_kill 0\n").unwrap();
        std::fs::write(file("other"), "oom_kill_disable 0\n").unwrap();
        let kills = Kills::in_files(["vmstat", "events", "other", "absent"].map(file));
        assert_eq!(kills.0, [(file("vmstat"), 4), (file("events"), 0)]);
        assert!(!kills.are_more_now());
        std::fs::write(file("events"), "oom 10\noom_kill 0\noom_group_kill 1\n").unwrap();
        assert!(!kills.are_more_now());
        std::fs::write(file("events"), "oom 10\noom_kill 1\n").unwrap();
        assert!(kills.are_more_now());
        std::fs::write(file("events"), "").unwrap();
        std::fs::write(file("vmstat"), "oom_kill 5\n").unwrap();
        assert!(kills.are_more_now());
    }

    #[test]
    fn groups_of_both_versions() {
        let paths = |groups: &str| files(groups).iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        assert_eq!(paths("0::/a/b\n"), ["/sys/fs/cgroup/a/b/memory.events", "/sys/fs/cgroup/memory.events"]);
        assert_eq!(paths("0::/\n"), ["/sys/fs/cgroup/memory.events"]);
        let first = "5:cpu,cpuacct:/x\n4:memory:/docker/1\nnonsense\n";
        assert_eq!(
            paths(first),
            ["/sys/fs/cgroup/memory/docker/1/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"]
        );
    }
}
