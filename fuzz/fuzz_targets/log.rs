#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ocsc_cli::fuzzing::exercise_bytes("a.jsonl", bytes));
