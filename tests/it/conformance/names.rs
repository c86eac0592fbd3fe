//! What the model calls an identity or a version, and what the API server calls it.

use std::collections::BTreeMap;

use gpu_batch_policies::facts::Uid;
use gpu_batch_simulator::api_server::Version;

/// Pairs of names. Versions are renamed in their order: other sequences take versions, too, so that
/// only equality and order can be compared.
#[derive(Debug, Default)]
pub(super) struct Names {
    real: BTreeMap<Uid, Uid>,
    model: BTreeMap<Uid, Uid>,
    versions: BTreeMap<Version, Meaning>,
}

/// What one version of the model is on the API server.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    /// The version of a write.
    write: Option<Version>,
    /// The newest moment at which it was seen, by a list.
    seen: Version,
}

impl Names {
    /// The API server's UID; for one that no object has, some other that none has.
    pub(super) fn real_uid(&self, model: Uid) -> Uid {
        let never = Uid(model.0 | 0x4000 << 64);
        self.real.get(&model).copied().unwrap_or(never)
    }

    /// The model's UID for one of the API server.
    pub(super) fn model_uid(&self, real: Uid) -> Uid {
        let never = Uid(real.0 & !(0x4000 << 64));
        self.model.get(&real).copied().unwrap_or(never)
    }

    /// The two are the same identity.
    pub(super) fn meet(&mut self, model: Uid, real: Uid) -> Result<(), String> {
        let known = (self.real.get(&model), self.model.get(&real));
        match known {
            (None, None) => {
                self.real.insert(model, real);
                self.model.insert(real, model);
                Ok(())
            }
            (Some(known), Some(_)) if *known == real => Ok(()),
            _ => Err(format!("the UID {model} cannot be {real}: {known:?}")),
        }
    }

    /// What to say for a version of the model; for one still to come, one still to come.
    pub(super) fn real_version(&self, model: Version) -> Version {
        let meaning = self.versions.get(&model);
        meaning.map_or(model << 20, |meaning| meaning.write.unwrap_or(meaning.seen))
    }

    /// The two versions are the same write.
    pub(super) fn written(&mut self, model: Version, real: Version) -> Result<(), String> {
        let meaning = self.versions.get(&model).copied();
        let before = self.versions.range(..model).next_back();
        let after = self.versions.range(model + 1..).next();
        let fits = match meaning {
            Some(Meaning {
                write: Some(write), ..
            }) => write == real,
            Some(Meaning { write: None, seen }) => real <= seen,
            None => true,
        };
        let ordered = before.is_none_or(|(_, before)| before.seen < real)
            && after.is_none_or(|(_, after)| real < after.write.unwrap_or(after.seen));
        if !fits || !ordered {
            return Err(format!(
                "version {model} cannot be {real}: it is {meaning:?} between {before:?} and \
                 {after:?}"
            ));
        }
        let seen = meaning.map_or(real, |meaning| meaning.seen.max(real));
        let write = Some(real);
        self.versions.insert(model, Meaning { write, seen });
        Ok(())
    }

    /// A list showed the moment of this version of the model.
    pub(super) fn listed(&mut self, model: Version, real: Version) -> Result<(), String> {
        let meaning = self.versions.get(&model).copied();
        let before = self.versions.range(..model).next_back();
        let after = self.versions.range(model + 1..).next();
        let ordered = before.is_none_or(|(_, before)| before.seen <= real)
            && meaning.is_none_or(|meaning| meaning.write.is_none_or(|write| write <= real))
            && after.is_none_or(|(_, after)| real < after.write.unwrap_or(after.seen));
        if !ordered {
            return Err(format!(
                "a list of version {model} cannot be of {real}: it is {meaning:?} between \
                 {before:?} and {after:?}"
            ));
        }
        let write = meaning.and_then(|meaning| meaning.write);
        let seen = meaning.map_or(real, |meaning| meaning.seen.max(real));
        self.versions.insert(model, Meaning { write, seen });
        Ok(())
    }
}
