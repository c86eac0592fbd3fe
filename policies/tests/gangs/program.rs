//! The question of [`super::case`] as an integer program.

use super::case::{Case, Pod};
use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, constraint,
    microlp, variable,
};
use std::collections::BTreeMap;

/// Pods of one leaf that are the same: how many there are, and by node how many are there.
struct Alike<'case> {
    pod: &'case Pod,
    count: u32,
    places: Vec<Option<Variable>>,
}

/// Whether any placement of any of the pods meets the minima and all rules.
pub(crate) fn fits(case: &Case) -> bool {
    let mut variables = ProblemVariables::new();
    let alike = alike(case, &mut variables);
    // Which groups are met, and in which domain each is that must be in one.
    let met: Vec<Variable> = variables.add_vector(variable().binary(), case.groups.len());
    let mut domains: Vec<BTreeMap<Vec<String>, Variable>> = Vec::new();
    for group in &case.groups {
        let mut known = BTreeMap::new();
        if let Some(level) = group.required {
            for node in 0..case.nodes.len() {
                let domain = case.domain(node, level);
                let binary = || variables.add(variable().binary());
                known.entry(domain).or_insert_with(binary);
            }
        }
        domains.push(known);
    }
    let total: Expression = alike.iter().map(Alike::placed).sum();
    let mut model = variables.minimise(total).using(microlp);
    for alike in &alike {
        model.add_constraint(constraint!(alike.placed() <= alike.count));
    }
    for (number, node) in case.nodes.iter().enumerate() {
        let sum = |amount: &dyn Fn(&Pod) -> f64| -> Expression {
            let here = alike
                .iter()
                .filter_map(|alike| Some((amount(alike.pod), alike.places[number]?)));
            here.map(|(amount, here)| amount * here).sum()
        };
        model.add_constraint(constraint!(sum(&|pod| pod.cpus as f64) <= node.cpus as f64));
        model.add_constraint(constraint!(sum(&|pod| pod.gpus as f64) <= node.gpus as f64));
        model.add_constraint(constraint!(sum(&|pod| f64::from(u8::from(pod.port))) <= 1));
    }
    for (index, group) in case.groups.iter().enumerate() {
        let members: Expression = if case.is_leaf(index) {
            let pods = alike.iter().filter(|alike| alike.pod.leaf == index);
            pods.map(Alike::placed).sum()
        } else {
            let children = case.children(index);
            children.map(|child| Expression::from(met[child])).sum()
        };
        model.add_constraint(constraint!(members >= group.minimum as f64 * met[index]));
        let Some(level) = group.required else {
            continue;
        };
        let one: Expression = domains[index].values().map(|v| Expression::from(*v)).sum();
        model.add_constraint(constraint!(one <= 1));
        let below = |alike: &&Alike<'_>| case.groups_of(alike.pod.leaf).contains(&index);
        for alike in alike.iter().filter(below) {
            for (node, place) in alike.places.iter().enumerate() {
                if let Some(here) = place {
                    let domain = domains[index][&case.domain(node, level)];
                    let most = f64::from(alike.count) * domain;
                    model.add_constraint(constraint!(*here <= most));
                }
            }
        }
    }
    model.add_constraint(constraint!(met[0] >= 1));
    match model.solve() {
        Ok(solution) => {
            assert!(solution.value(met[0]) > 0.5);
            true
        }
        Err(ResolutionError::Infeasible) => false,
        Err(error) => panic!("the solver gives up: {error}"),
    }
}

fn alike<'case>(case: &'case Case, variables: &mut ProblemVariables) -> Vec<Alike<'case>> {
    let mut alike: Vec<Alike<'_>> = Vec::new();
    for pod in &case.pods {
        match alike.iter_mut().find(|alike| alike.pod == pod) {
            Some(alike) => alike.count += 1,
            None => alike.push(Alike {
                pod,
                count: 1,
                places: Vec::new(),
            }),
        }
    }
    for alike in &mut alike {
        let pod = alike.pod;
        for node in &case.nodes {
            let fits = pod.cpus <= node.cpus && pod.gpus <= node.gpus && (node.fast || !pod.fast);
            let number = || variable().integer().min(0).max(alike.count);
            alike.places.push(fits.then(|| variables.add(number())));
        }
    }
    alike
}

impl Alike<'_> {
    fn placed(&self) -> Expression {
        let places = self.places.iter().flatten();
        places.copied().map(Expression::from).sum()
    }
}
