//! Text for people, plain or as Markdown.

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Plain,
    Markdown,
}

/// Names and what is known of each.
#[derive(Default)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    pub fn add(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    pub fn print(&self, format: Format) {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.0 {
            match format {
                Format::Plain => println!("  {name:width$}  {value}"),
                Format::Markdown => println!("- {name}: {value}"),
            }
        }
    }
}

/// A heading above a table or facts, and a line of explanation.
pub fn heading(format: Format, title: &str, explanation: &str) {
    match format {
        Format::Plain => println!("\n{title}"),
        Format::Markdown => println!("\n### {title}\n"),
    }
    if !explanation.is_empty() {
        match format {
            Format::Plain => println!("  ({explanation})"),
            Format::Markdown => println!("{explanation}\n"),
        }
    }
}

/// A header and rows of as many cells. The first `words` columns start at the
/// left, the others end at the right.
pub struct Table {
    rows: Vec<Vec<String>>,
    words: usize,
}

impl Table {
    pub fn new<S: Into<String>>(words: usize, header: impl IntoIterator<Item = S>) -> Self {
        Table {
            rows: vec![header.into_iter().map(Into::into).collect()],
            words,
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn print(&self, format: Format) {
        let width_of = |column: usize| {
            let widths = self.rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width_of).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| {
                if column < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            let cells: Vec<String> = cells.collect();
            match format {
                Format::Plain => println!("  {}", cells.join("  ").trim_end()),
                Format::Markdown => println!("| {} |", cells.join(" | ")),
            }
            if number == 0 && format == Format::Markdown {
                let rules =
                    (0..cells.len()).map(|column| if column < self.words { "---" } else { "---:" });
                println!("| {} |", Vec::from_iter(rules).join(" | "));
            }
        }
    }
}

/// Three digits or so.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => grouped(value.round() as u64),
    }
}

/// 248320 as 248,320.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
