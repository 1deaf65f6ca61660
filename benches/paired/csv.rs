//! All measurements as a file, which `examples/plot.rs` reads.

use std::error::Error;
use std::fs::File;

use crate::measure::Cells;

/// A line a place: medians, and how the draws went.
pub fn write(file: File, cells: &Cells) -> Result<(), Box<dyn Error>> {
    let mut file = csv::Writer::from_writer(file);
    file.write_record([
        "vocab",
        "shape",
        "temperature",
        "top_p",
        "subject",
        "aligned",
        "samples",
        "microseconds",
        "times_faster_than_c",
        "over_scan",
        "certified",
        "refined",
        "exact",
        "heap",
    ])?;
    for (key, cell) in cells {
        let setting = key.setting();
        file.write_record([
            key.vocab.to_string(),
            key.shape().to_owned(),
            setting.temperature.to_string(),
            setting.top_p.to_string(),
            key.subject.name().to_owned(),
            key.aligned.to_string(),
            cell.samples().to_string(),
            format!("{:.3}", cell.microseconds()),
            format!("{:.4}", cell.times_faster_than_c()),
            format!("{:.4}", cell.over_scan()),
            cell.routes.certified.to_string(),
            cell.routes.refined.to_string(),
            cell.routes.exact.to_string(),
            cell.heap.to_string(),
        ])?;
    }
    file.flush()?;
    Ok(())
}
