use super::*;

/// Runs a demo of so many gangs to its end, and gives what it found and did.
fn run_model(gangs: u32, chaos: Option<u64>) -> (Vec<String>, String) {
    let length = Duration::from_secs(60);
    let gangs = workload::gangs(gangs, length);
    let objects = setting::objects(false).unwrap();
    let nodes: Vec<Node> = objects
        .iter()
        .filter(|(path, _)| path == "/api/v1/nodes")
        .map(|(_, node)| serde_json::from_value(node.clone()).unwrap())
        .collect();
    let mut witness = Witness::new(gangs.clone(), &nodes);
    if chaos.is_some() {
        witness.partial_within = witness::PARTIAL_WITHIN_CHAOS;
    }
    let books = Books::new(witness);
    let start = Instant::now();
    let chaos = chaos.map(|seed| (seed, length * 2 / 3));
    let mut model = Model::new(Converter::new("gpu-batch", 0), chaos, false);
    for (_, object) in objects {
        model.create(object).unwrap();
    }
    model.expect(gangs);
    while model.elapsed() < length * 2 {
        model.advance().unwrap();
        model.tell(&books, start);
    }
    let witness = books.open();
    let mut checks = check::all(&witness, &nodes, &model.pods(), start + model.elapsed());
    checks.push(audit(&model));
    let mut found: Vec<String> = checks.into_iter().flat_map(|c| c.violations).collect();
    let courses = witness.courses.values();
    let unfinished = courses.filter(|course| course.ended.is_none() && !course.gang.hopeless);
    found.extend(unfinished.map(|course| format!("{} has not ended", course.gang.name)));
    let did = format!("{} binds, {:?}", witness.binds, model.struck());
    (found, did)
}

#[test]
fn all_gangs_run_to_their_end_and_all_promises_hold() {
    let (found, did) = run_model(80, None);
    assert_eq!(found, Vec::<String>::new());
    assert!(did.contains("(0, \"requests were lost\")"), "{did}");
}

#[test]
fn chaos_strikes_and_all_promises_hold_nevertheless() {
    let mut large = Vec::new();
    for seed in 1..=20 {
        let many = seed % 4 == 0;
        let (found, did) = run_model(if many { 300 } else { 80 }, Some(seed));
        assert_eq!(found, Vec::<String>::new(), "seed {seed}");
        large.extend(many.then_some(did));
    }
    let in_most = large.iter().filter(|did| !did.contains("(0, ")).count();
    assert!(in_most >= 3, "something never strikes: {large:#?}");
}

#[test]
fn the_same_seed_gives_the_same_demo() {
    assert_eq!(run_model(40, Some(7)), run_model(40, Some(7)));
}
