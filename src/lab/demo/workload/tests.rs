use super::*;
use std::collections::BTreeSet;

const LENGTH: Duration = Duration::from_secs(100);

#[test]
fn the_same_gangs_come_in_every_run() {
    assert_eq!(gangs(300, LENGTH), gangs(300, LENGTH));
}

#[test]
fn no_two_gangs_have_the_same_name() {
    let gangs = gangs(1_500, LENGTH);
    let names: BTreeSet<&str> = gangs.iter().map(|gang| gang.name.as_str()).collect();
    assert_eq!(names.len(), gangs.len());
}

#[test]
fn the_work_is_a_bit_less_than_what_the_cluster_can_do() {
    let gangs = gangs(300, LENGTH);
    let all = gangs.iter().filter(|gang| !gang.hopeless);
    let work: u64 = all
        .map(|gang| u64::from(gang.all_gpus()) * u64::from(gang.run_s))
        .sum();
    let possible = u64::from(GPUS) * LENGTH.as_secs();
    assert!(
        (possible * 7 / 10..possible * 9 / 10).contains(&work),
        "{work} of {possible}"
    );
}

#[test]
fn every_gang_that_is_not_hopeless_can_start_on_an_empty_cluster() {
    for gang in gangs(1_500, LENGTH).iter().filter(|gang| !gang.hopeless) {
        let rack = gang.traits == Traits::OneRack;
        let most = if rack { 64 } else { 128 };
        assert!(gang.all_gpus() <= most, "{gang:?}");
        assert!((1..=gang.pods).contains(&gang.minimum), "{gang:?}");
        assert!(gang.arrival < LENGTH.mul_f64(0.7), "{gang:?}");
        assert!((RUN_S.0..=RUN_S.1).contains(&gang.run_s), "{gang:?}");
    }
}

#[test]
fn a_gang_is_an_indexed_job_of_the_pods_that_it_says() {
    for gang in gangs(60, LENGTH) {
        let objects = gang.objects("gpu-batch", false);
        assert_eq!(objects.len() == 2, gang.form == Form::PodGroup, "{gang:?}");
        let (_, job) = objects.last().unwrap();
        assert_eq!(job["spec"]["completions"], gang.pods);
        assert_eq!(job["spec"]["parallelism"], gang.pods);
    }
}

#[test]
fn on_a_shared_cluster_the_pods_stay_on_the_fake_nodes() {
    let [(_, job)] = &gangs(0, LENGTH)[0].objects("gpu-batch", true)[..] else {
        panic!("a Job and nothing else");
    };
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(
        pod["nodeSelector"][crate::lab::demo::setting::DEMO_ONLY],
        "true"
    );
}
