//! Placeholder line; see ARCHITECTURE.md.
