//! Models by name: from the Hugging Face hub, other addresses, and folders of other programs.

#![forbid(unsafe_code)]
