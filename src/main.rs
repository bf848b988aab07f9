//! The program: hands its arguments to the command line.

fn main() {}
