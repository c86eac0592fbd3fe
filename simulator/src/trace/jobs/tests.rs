use super::*;
use crate::random::Random;
use std::io::Cursor;

const HEADER: &str = "row,submit_s,duration_s,num_gpus,vc\n";

fn of_bytes(bytes: &[u8]) -> Result<Jobs, String> {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let table = Table::of_reader(Path::new("jobs.csv"), reader, &COLUMNS, &OPTIONAL);
    let read = table.and_then(Jobs::of_table);
    read.map_err(|error| error.to_string())
}

fn message(rows: &str) -> String {
    of_bytes(format!("{HEADER}{rows}").as_bytes()).unwrap_err()
}

#[test]
fn jobs_are_read_in_the_order_of_the_file() {
    let read = of_bytes(format!("{HEADER}7,0,60,8,b\n3,0,0,1,a\n9,5,1,1,b\n").as_bytes());
    let read = read.unwrap();
    let job = |row, submit_s, duration_s, num_gpus, queue| Job {
        row,
        submit_s,
        duration_s,
        num_gpus,
        queue,
        checkpoint_s: None,
        expected_s: None,
        owner: None,
    };
    let expected = [job(7, 0, 60, 8, 0), job(3, 0, 0, 1, 1), job(9, 5, 1, 1, 0)];
    assert_eq!(read.jobs, expected);
    assert_eq!(read.queues, ["b", "a"]);
}

#[test]
fn a_job_may_say_how_often_it_saves_its_work() {
    let text = "row,submit_s,duration_s,num_gpus,vc,checkpoint_s\n1,0,60,8,a,600\n2,0,60,8,a,\n";
    let read = of_bytes(text.as_bytes()).unwrap();
    let every_s: Vec<_> = read.jobs.iter().map(|job| job.checkpoint_s).collect();
    assert_eq!(every_s, [Some(600), None]);
    let mut written = Vec::new();
    read.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
    assert_eq!(
        of_bytes(text.replace("600", "0").as_bytes()).unwrap_err(),
        "jobs.csv:2: checkpoint_s: is 0; it is left empty for a job that saves nothing"
    );
}

#[test]
fn a_job_may_say_whose_it_is() {
    let text = "row,submit_s,duration_s,num_gpus,vc,owner\n1,0,60,8,a,nightly\n2,0,60,8,a,\n\
                3,0,60,8,b,me\n4,0,60,8,b,nightly\n";
    let read = of_bytes(text.as_bytes()).unwrap();
    let owners: Vec<_> = read.jobs.iter().map(|job| job.owner).collect();
    assert_eq!(owners, [Some(0), None, Some(1), Some(0)]);
    assert_eq!(read.owners, ["nightly", "me"]);
    let mut written = Vec::new();
    read.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
    let empty = of_bytes(b"row,submit_s,duration_s,num_gpus,vc,owner\n1,0,60,8,a,\n").unwrap();
    assert_eq!(empty.owners, [] as [String; 0]);
}

#[test]
fn wrong_jobs_are_refused() {
    assert_eq!(message(""), "jobs.csv: has no jobs");
    assert_eq!(
        message("1,9,1,1,a\n2,8,1,1,a\n"),
        "jobs.csv:3: submit_s: 8 is before 9 of the job above"
    );
    assert_eq!(
        message("1,0,1,1,a\n4,0,1,1,a\n\n\n2,0,1,1,a\n3,0,1,1,a\n\n4,0,1,1,a\n2,0,1,1,a\n"),
        "jobs.csv:9: row: 4 is also the row of the job on line 3"
    );
    assert_eq!(
        message("1,-1,1,1,a\n"),
        "jobs.csv:2: submit_s: \"-1\" is negative"
    );
    assert_eq!(
        message("1,0,-1,1,a\n"),
        "jobs.csv:2: duration_s: \"-1\" is negative"
    );
    assert_eq!(
        message("1,0,10000000001,1,a\n"),
        "jobs.csv:2: duration_s: \"10000000001\" is over 10000000000"
    );
    assert_eq!(
        message("1,0,1,0,a\n"),
        "jobs.csv:2: num_gpus: is 0; only jobs with GPUs are simulated"
    );
    assert_eq!(
        message("1,0,1,4294967297,a\n"),
        "jobs.csv:2: num_gpus: \"4294967297\" is over 1000000"
    );
    assert_eq!(message("1,0,1,1,\n"), "jobs.csv:2: vc: is empty");
    assert_eq!(
        message("x,0,1,1,a\n"),
        "jobs.csv:2: row: \"x\" is not a whole number"
    );
}

/// A good file with a few bytes changed, lost, doubled or moved is read or refused, and a refusal
/// names the file.
#[test]
fn no_damage_is_a_panic() {
    let mut good = HEADER.to_owned();
    for row in 0..50 {
        good += &format!(
            "{row},{},{},{},q{}\n",
            row * 7,
            row * 13 % 90,
            1 + row % 8,
            row % 3
        );
    }
    let mut refused = 0;
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut bytes = good.clone().into_bytes();
        for _ in 0..random.between(1, 3) {
            damage(&mut bytes, &mut random);
        }
        if let Err(message) = of_bytes(&bytes) {
            assert!(message.starts_with("jobs.csv:"), "seed {seed}: {message}");
            refused += 1;
        }
    }
    assert!((5_000..20_000).contains(&refused), "{refused} were refused");
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
    let far = usize::try_from(random.below(bytes.len() as u64)).unwrap();
    match random.below(6) {
        0 => bytes[at] = random.next_u64().to_le_bytes()[0],
        1 => bytes[at] = *random.pick(b"\",\n\r-.0\0\xFF \xEF"),
        2 => drop(bytes.remove(at)),
        3 => bytes.insert(at, *random.pick(b"\",\n9-\xC0")),
        4 => bytes.truncate(at.max(1)),
        _ => {
            let piece = bytes[at.min(far)..at.max(far).min(at.min(far) + 40)].to_vec();
            let place = at.max(far);
            bytes.splice(place..place, piece);
        }
    }
}
