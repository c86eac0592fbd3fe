//! An engine that panics.

use crate::World;
use gpu_batch_policies::event::Event;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl World {
    /// The engine panics at the next step, over this gang and with this message; another one, which
    /// leaves the gang alone, begins with empty lists.
    ///
    /// # Panics
    /// If the engine does not panic, or is not to blame this gang.
    pub fn panic_over(&mut self, gang: &str, message: &str) {
        let gang = format!("default/{gang}");
        self.engine.plant_panic(&gang);
        let panicked = catch_unwind(AssertUnwindSafe(|| self.commands()));
        assert!(panicked.is_err(), "nothing of {gang} is planned");
        assert_eq!(self.engine.gang_in_hand(), Some(&*gang));
        self.engine = self.engine.after_panic(message);
        self.engine.plant_panic("");
        self.objects.clear();
        self.events = Event::lists([]);
    }
}
