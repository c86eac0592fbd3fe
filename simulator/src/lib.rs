//! The other shell around [`gpu_batch_policies`]: a model world in virtual time.
