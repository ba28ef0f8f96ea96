//! The program `ocsc`.
#![allow(dead_code)]
mod chart;
mod picture;
mod record;
mod report;

fn main() {}
