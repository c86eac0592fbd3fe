//! Placements by name.

use gpu_batch_policies::facts::Placement;

/// Why a word is no placement that can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlacementError {
    #[error("is not supported yet; use binpack or spread")]
    NotYet,
    #[error("is not a placement; use binpack or spread")]
    Unknown,
}

/// Reads one placement.
pub(super) fn parse(word: &str) -> Result<Placement, PlacementError> {
    match word {
        "binpack" => Ok(Placement::Binpack),
        "spread" => Ok(Placement::Spread),
        "best-fit" | "fragmentation" => Err(PlacementError::NotYet),
        _ => Err(PlacementError::Unknown),
    }
}
