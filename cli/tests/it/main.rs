//! The real binary on fixtures: exit codes, what goes to which stream, the shapes of JSON. One binary a
//! suite; a file here a command.

#[cfg(test)]
mod compile;
#[cfg(test)]
mod connector;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod help;
#[cfg(test)]
mod predicate;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod send;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod support;
