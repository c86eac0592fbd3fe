use super::*;

#[test]
fn rows_beyond_a_thousand_are_counted() {
    let mut table = Table::new("Jobs", "", &["job"]);
    for row in 0..1_003 {
        table.row(vec![row.to_string()]);
    }
    assert_eq!((table.rows.len(), table.rows_left_out), (1_000, 3));
}
