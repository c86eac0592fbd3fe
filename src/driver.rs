//! The one loop: watches and outcomes in, commands out.
