//! Bars of long work.

use crate::Home;

#[test]
fn a_long_prompt_shows_how_far_it_is() {
    let home = Home::new();
    let args = ["bench", "--device", "cpu", "-p", "100000", "-ub", "32", "-n", "0", "-r", "1", "--no-warmup"];
    let mut t = home.command(&args, 100);
    t.wait("bench [");
    // It moves within the run.
    let bar = t.wait("/100000 tokens");
    let done = |bar: &str| bar.rsplit(' ').find_map(|word| word.split('/').next()?.parse::<u32>().ok());
    let first = done(&bar);
    while done(&t.wait("/100000 tokens")) <= first {}
}
