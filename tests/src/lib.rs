//! End-to-end tests and repository rules; the library itself is empty.
