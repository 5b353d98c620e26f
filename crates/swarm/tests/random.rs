//! The fuzz target with random changes of its seeds.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn hub_and_worker_among_peers_that_send_anything() {
    drive::drive("swarm", bodies::swarm);
}
