//! Random numbers of which every one can be had on its own, so that parallel generators need no
//! order.

/// Number `i` of a stream, uniform in [0, 1).
pub(super) fn uniform(stream: u64, i: usize) -> f64 {
    (mix(stream.wrapping_add(i as u64)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// One step of `SplitMix64` (Steele, Lea and Flood, 2014): any number to one that looks random.
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_of_random_numbers_is_splitmix64() {
        // first outputs of the published generator for the seed 1234567
        let golden = 0x9E37_79B9_7F4A_7C15_u64;
        let outputs: Vec<u64> =
            (0..3).map(|i| mix(1_234_567_u64.wrapping_add(golden.wrapping_mul(i)))).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(outputs, published);
    }
}
