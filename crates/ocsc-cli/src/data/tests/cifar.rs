//! CIFAR batches.

use super::*;

#[test]
fn records_of_both_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let record = |labels: &[u8], level: u8| [labels, &vec![level; 3071], &[255]].concat();
    let ten = write(folder.path(), "data_batch_1.bin", &[record(&[3], 51), record(&[9], 102)].concat());
    let source = open(&ten, "").unwrap();
    assert_eq!((source.len(), source.rank(), source.is_images()), (2, 2, Some(true)));
    assert_eq!(source.size(1).unwrap(), [1, 32, 32]);
    let second = get(&source, 1);
    assert_eq!(second.shape(), shape(3, 1, 32, 32));
    assert_eq!((second.data()[0], second.data()[3071]), (0.4, 1.0));
    assert!(source.name(1).ends_with("data_batch_1.bin[1]"));
    let hundred = write(folder.path(), "train.bin", &[record(&[19, 99], 51), record(&[0, 0], 102)].concat());
    assert_eq!(get(&open(&hundred, "").unwrap(), 1).data()[0], 0.4);

    let message = refusal(&write(folder.path(), "cut.bin", &record(&[3], 1)[..3000]), "");
    assert_contains(&message, &["cut.bin", "3000 bytes", "3073", "3074"]);
    assert_contains(&refusal(&write(folder.path(), "void.bin", b""), ""), &["void.bin", "empty"]);
    let message = refusal(&write(folder.path(), "other.bin", &record(&[77], 1)), "");
    assert_contains(&message, &["other.bin", "label 77", "0 to 9"]);
}
