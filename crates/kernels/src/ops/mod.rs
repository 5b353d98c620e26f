//! The operations, one folder each.

pub mod adjust;
pub mod argmax;
pub mod argsort;
pub mod attention;
pub mod attention_merge;
pub mod binary;
pub mod cumsum;
pub mod gated_delta_net;
pub mod gated_linear_attn;
pub mod get_rows;
pub mod glu;
pub mod measure;
pub mod mul_mat;
pub mod mul_mat_vec;
pub mod norm;
pub mod rms_norm;
pub mod rope;
pub mod rope_kv;
pub mod sample;
pub mod scale;
pub mod soft_max;
pub mod ssm_conv;
pub mod ssm_scan;
pub mod sum;
pub mod top_k;
pub mod unary;
