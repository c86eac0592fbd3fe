use super::input::{self, Machine, Orders};
use crate::input::{InputError, Table};
use std::io::Cursor;
use std::path::Path;

fn table(columns: &[&'static str], text: &str) -> Result<Table, InputError> {
    let reader = Box::new(Cursor::new(text.to_owned().into_bytes()));
    Table::of_reader(Path::new("f.csv"), reader, columns, &[])
}

/// The message about a bad row below the header.
fn message<T>(
    columns: &[&'static str],
    rows: &str,
    read: impl Fn(Table) -> Result<T, InputError>,
) -> String {
    let text = format!("{}\n{rows}", columns.join(","));
    let read = table(columns, &text).and_then(read);
    read.err()
        .map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

fn machines() -> Vec<Machine> {
    let text = "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4\nb,4000,4096,1,A10\n";
    table(&input::NODES, text)
        .and_then(input::machines)
        .unwrap()
}

#[test]
fn bad_nodes_are_named() {
    for (rows, expected) in [
        ("", "f.csv: has no node with a GPU"),
        ("a,1,1,0,\n", "f.csv: has no node with a GPU"),
        ("a,1,1,1,T4\na,1,1,1,T4", "f.csv:3: sn: \"a\" occurs twice"),
        ("a,-1,1,1,T4", "f.csv:2: cpu_milli: \"-1\" is negative"),
        ("a,1,1,257,T4", "f.csv:2: gpu: \"257\" is over 256"),
        ("a,1,1,1,", "f.csv:2: model: is empty"),
        ("a,1,1,1", "f.csv:2: the line has 4 values and the header 5"),
    ] {
        assert_eq!(message(&input::NODES, rows, input::machines), expected);
    }
}

/// With the column that may be absent.
const PODS: [&str; 6] = {
    let [name, cpu, memory, number, thousandths] = input::PODS;
    [
        name,
        cpu,
        memory,
        number,
        thousandths,
        input::PODS_OPTIONAL[0],
    ]
};

#[test]
fn bad_pods_are_named() {
    let read = |table| input::pods(table, &machines());
    for (rows, expected) in [
        ("", "f.csv: has no pods"),
        (
            "p,1,1,0,0,\np,1,1,0,0,",
            "f.csv:3: name: \"p\" occurs twice",
        ),
        (
            "p,x,1,0,0,",
            "f.csv:2: cpu_milli: \"x\" is not a whole number",
        ),
        ("p,1,1,1,0,", "f.csv:2: gpu_milli: is 0 for a pod with GPUs"),
        ("p,1,1,1,1001,", "f.csv:2: gpu_milli: \"1001\" is over 1000"),
        (
            "p,1,1,2,500,",
            "f.csv:2: gpu_milli: is a part of a GPU for a pod with several",
        ),
        (
            "p,9000,1,0,0,",
            "f.csv:2: cpu_milli: is more than any node has",
        ),
        (
            "p,8000,1025,0,0,",
            "f.csv:2: cpu_milli: is more than any node has",
        ),
        (
            "p,1,9999,0,0,",
            "f.csv:2: memory_mib: is more than any node has",
        ),
        (
            "p,1,1,3,1000,",
            "f.csv:2: num_gpu: is more than any node has",
        ),
    ] {
        assert_eq!(message(&PODS, rows, read), expected, "{rows}");
    }
    // Of a pod without GPUs the other columns mean nothing, and a model may be unknown.
    assert_eq!(
        message(&PODS, "p,1,1,0,x,H100\nq,1,1,1,20,H100|T4", read),
        "no error"
    );
}

#[test]
fn bad_orders_are_named() {
    let read = |table| Orders::read(table, 2, 3);
    let nodes = "7,node,0,1\n7,node,1,0\n";
    for (rows, expected) in [
        ("", "f.csv: has no orders"),
        (
            "7,gpu,0,0",
            "f.csv:2: kind: \"gpu\" is neither `pod` nor `node`",
        ),
        ("7,pod,0,3", "f.csv:2: row: 3: there are 3 pods, from 0"),
        ("7,node,0,2", "f.csv:2: row: 2: there are 2 nodes, from 0"),
        ("7,pod,0,0\n7,pod,0,1", "f.csv:3: pos: 0 occurs twice"),
        (
            "7,pod,0,0\n7,pod,2,1",
            "f.csv:3: pos: seed 7 has no pod at 1",
        ),
        (nodes, "f.csv: seed 7 has no pod"),
        ("7,pod,0,0", "f.csv: seed 7 has no node"),
        (
            "7,pod,0,0\n7,node,0,1",
            "f.csv: seed 7 does not rank node 0",
        ),
        (
            "7,pod,0,0\n7,node,0,1\n7,node,1,1",
            "f.csv:4: row: seed 7 ranks node 1 twice",
        ),
    ] {
        assert_eq!(message(&input::ORDER, rows, read), expected, "{rows}");
    }
    // Lines may stand in any order, and pods may come again.
    let rows = format!("7,pod,1,2\n{nodes}7,pod,0,2\n");
    assert_eq!(message(&input::ORDER, &rows, read), "no error");
    let text = format!("seed,kind,pos,row\n{rows}");
    let orders = read(table(&input::ORDER, &text).unwrap()).unwrap();
    let order = orders.of(7).unwrap();
    assert_eq!((&*order.pods, &*order.ranks), (&[2, 2][..], &[1, 0][..]));
}

#[test]
fn bad_target_workloads_are_named() {
    for (rows, expected) in [
        ("", "f.csv: has no kinds of pods"),
        ("1,0,0,,0", "f.csv:2: freq: is not above 0 and at most 1"),
        ("1,0,0,,NaN", "f.csv:2: freq: \"NaN\" is not a number"),
        (
            "1,0,0,,0.5\n1,0,0,,0.5",
            "f.csv:3: cpu_milli: this kind of pods occurs twice",
        ),
    ] {
        assert_eq!(message(&input::TYPICAL, rows, input::typical), expected);
    }
}

#[test]
fn the_workload_is_named_after_its_file() {
    for (file, name) in [
        ("a/openb_pod_list_default.csv.gz", "default"),
        ("openb_pod_list_gpuspec33.csv", "gpuspec33"),
        ("mine.csv", "mine"),
        ("x", "x"),
    ] {
        assert_eq!(input::workload(Path::new(file)), name);
    }
}
