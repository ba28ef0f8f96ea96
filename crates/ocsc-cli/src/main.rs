//! The program `ocsc`.
#![allow(dead_code)]

mod data;
mod leaves;

fn main() {}
