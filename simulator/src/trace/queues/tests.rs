use super::*;
use std::io::Cursor;

fn of_text(text: &str) -> Result<Vec<(String, u32)>, String> {
    let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let table = Table::of_reader(Path::new("queues.csv"), reader, &COLUMNS, &[]);
    let queues = table
        .and_then(of_table)
        .map_err(|error| error.to_string())?;
    Ok(queues.into_iter().map(|q| (q.name, q.nodes)).collect())
}

#[test]
fn queues_are_read_in_the_order_of_the_file() {
    let queues = of_text("vc,node num\nb,3\na,0\n").unwrap();
    assert_eq!(queues, [("b".to_owned(), 3), ("a".to_owned(), 0)]);
}

#[test]
fn wrong_queues_are_refused() {
    let message = |rows: &str| of_text(&format!("vc,node num\n{rows}")).unwrap_err();
    assert_eq!(message(""), "queues.csv: has no queues");
    assert_eq!(message("a,0\n"), "queues.csv: no queue has a node");
    assert_eq!(
        message("a,1\nb,1\na,2\n"),
        "queues.csv:4: vc: \"a\" occurs twice"
    );
    assert_eq!(
        message("a,1000000\nb,1\n"),
        "queues.csv:3: node num: all queues together have over 1000000 nodes"
    );
    assert_eq!(
        message("a,-1\n"),
        "queues.csv:2: node num: \"-1\" is negative"
    );
    assert_eq!(
        of_text("vc,nodes\na,1\n").unwrap_err(),
        "queues.csv:1: node num: the header lacks this column: \"vc,nodes\""
    );
}
