//! Measures every figure that the documentation claims.
//!
//! `engine` drives the decision engine alone, with generated facts and a world that carries
//! commands out at once. `live` runs the whole scheduler against a real API server, beside a *bare
//! binder* that only sends the bindings: what the scheduler costs is the difference. `simulate`
//! runs traces in virtual time.

pub(crate) mod engine;
pub(crate) mod live;
pub(crate) mod simulate;

mod row;

pub(crate) use row::{Bound, Row, table};

/// The value below which the fraction `part` of the samples lies (nearest rank); 0 without samples.
fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    let wanted = (0..=last)
        .find(|position| as_f64(position + 1) >= part * as_f64(samples.len()))
        .unwrap_or(last);
    samples.get(wanted).copied().unwrap_or(0.0)
}

fn median(mut samples: Vec<f64>) -> f64 {
    quantile(&mut samples, 0.5)
}

/// A count as a number to calculate with; exact below 2^32.
fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn a_quantile_is_the_sample_at_its_rank() {
        let check = |samples: &[f64], part, expected: f64| {
            let mut samples = samples.to_vec();
            assert!((quantile(&mut samples, part) - expected).abs() < 1e-9);
        };
        check(&[], 0.5, 0.0);
        check(&[3.0], 0.99, 3.0);
        check(&[3.0, 1.0, 2.0], 0.5, 2.0);
        check(&[4.0, 1.0, 2.0, 3.0], 0.5, 2.0);
        check(&[4.0, 1.0, 2.0, 3.0], 0.99, 4.0);
    }
}
