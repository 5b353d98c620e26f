//! A server on a socket of this machine, and its clients.

mod cases;
mod clients;
mod compare;
mod cut;
mod dialects;
mod embed;
mod ends;
mod faults;
mod golden;
mod hostile;
mod infill;
mod known;
mod lora;
mod models;
mod openapi;
mod operation;
mod page;
mod rerank;
mod serve;
mod shapes;
mod signs;
mod slots;
mod speculate;
mod strict;
mod tls;
mod traces;
