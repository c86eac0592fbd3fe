//! Two courses of a session as files: every gang and every pod.

use super::page::milliseconds;
use super::{Course, Session, Start};
use gpu_batch_policies::facts::UnixMs;
use std::collections::BTreeMap;
use std::io::{self, Write};

impl Session {
    /// Writes `gang,queue,arrived_s,recorded_s,other_s`, a line for each gang, by name. Times are
    /// seconds since the recorded scheduler began to decide; a gang that never started has no time.
    /// The queue is that of the other course. Where gangs may be promised starts there,
    /// `promised_s` follows: the first promise; empty: none.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_gangs(&self, other: &Course, file: impl Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(file);
        let columns = ["gang", "queue", "arrived_s", "recorded_s", "other_s"];
        let promised: Option<BTreeMap<_, _>> = self.promises_kept(other).map(|kept| {
            let kept = kept.into_iter();
            kept.map(|it| (it.gang, it.promised_ms)).collect()
        });
        let more = promised.as_ref().map(|_| "promised_s");
        table.write_record(columns.into_iter().chain(more))?;
        for (name, gang) in self.gangs() {
            let fields = [
                name.clone(),
                gang.queue(self, other).into(),
                self.after(Some(gang.arrived_ms)),
                self.after(gang.started_ms(&self.course)),
                self.after(gang.started_ms(other)),
            ];
            let promised = promised.as_ref();
            let promised = promised.map(|known| self.after(known.get(&*name).copied()));
            table.write_record(fields.into_iter().chain(promised))?;
        }
        table.flush()
    }

    /// Writes `pod,gang,gpus` and, for the record and for the other course, node, start and end: a
    /// line for each pod, by gang. A pod that held its node until the end of the record has no end.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_pods(&self, other: &Course, file: impl Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(file);
        table.write_record([
            "pod",
            "gang",
            "gpus",
            "recorded_node",
            "recorded_start_s",
            "recorded_end_s",
            "other_node",
            "other_start_s",
            "other_end_s",
        ])?;
        for (name, gang) in self.gangs() {
            for (uid, life) in gang.pods {
                let pod = format!("{}/{}", life.facts.namespace, life.facts.name);
                table.write_field(pod)?;
                table.write_field(&name)?;
                table.write_field(life.gpus().to_string())?;
                for course in [&self.course, other] {
                    for field in self.start(course.starts.get(&uid)) {
                        table.write_field(field)?;
                    }
                }
                table.write_record(None::<&[u8]>)?;
            }
        }
        table.flush()
    }

    fn start(&self, start: Option<&Start>) -> [String; 3] {
        start.map_or_else(Default::default, |start| {
            [
                start.node.to_string(),
                self.after(Some(start.at_ms)),
                self.after(start.until_ms),
            ]
        })
    }

    /// Seconds since the recorded scheduler began to decide; empty: never.
    pub(super) fn after(&self, at_ms: Option<UnixMs>) -> String {
        at_ms.map_or_else(String::new, |at_ms| {
            milliseconds(at_ms.saturating_sub(self.start_ms))
        })
    }
}
