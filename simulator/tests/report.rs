//! The page of a report: complete, safe with any name, the same every time, and not too large.
//! Where there is a Chromium in the path, it opens the page too.
#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test that panics has failed, and the numbers of the example are small"
)]

#[path = "report/browser.rs"]
mod browser;
#[path = "report/example.rs"]
mod example;

use gpu_batch_simulator::report::Report;
use serde_json::Value;

const QUEUES: [&str; 12] = [
    "vision", "speech", "search", "ads", "maps", "mail", "chat", "games", "music", "video",
    "research", "default",
];

const DATA: &str = "<script type=\"application/json\" id=\"data\">";

/// What a browser takes for the data: all up to the next end of a script.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(DATA).unwrap();
    let (data, _) = rest.split_once("</script").unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = example::jobs(&QUEUES, 1_000).to_html();
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for word in [
        "http:", "https:", "//cdn", " src=", "@import", "import(", "fetch(",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    for target in page.split("href=\"").skip(1) {
        assert!(target.starts_with("data:"), "{target:.40}");
    }
    for target in page.split("url(").skip(1) {
        assert!(target.starts_with('#'), "{target:.40}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_page_has_the_data_in_it() {
    for report in [example::jobs(&QUEUES, 1_000), example::openb()] {
        let json: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(data(&report.to_html()), json);
        assert_eq!(json["title"], *report.title);
        assert_eq!(
            json["panels"].as_array().unwrap().len(),
            report.panels.len()
        );
    }
}

#[test]
fn names_cannot_break_out() {
    for name in example::HOSTILE {
        let mut report = example::jobs(&[name, "other"], 100);
        report.title = name.to_owned();
        report.subtitle = name.to_owned();
        report.facts.push((name.to_owned(), name.to_owned()));
        let page = report.to_html();
        assert_eq!(count(&page, "<script"), 2, "{name}");
        assert_eq!(count(&page, "</script"), 2, "{name}");
        assert_eq!(
            (count(&page, "<img"), count(&page, "<!--")),
            (0, 0),
            "{name}"
        );
        let data = data(&page);
        assert_eq!(data["title"], name);
        assert_eq!(data["tables"][0]["rows"][0][1], name);
    }
}

fn count(page: &str, word: &str) -> usize {
    page.to_lowercase().matches(word).count()
}

#[test]
fn every_tag_is_closed() {
    let page = example::openb().to_html();
    for tag in [
        "html", "head", "body", "header", "nav", "main", "footer", "style", "dl", "p",
    ] {
        let open = count(&page, &format!("<{tag}>")) + count(&page, &format!("<{tag} "));
        let closed = count(&page, &format!("</{tag}>"));
        assert_eq!(open, closed, "{tag}");
        assert!(open > 0, "{tag}");
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let report = || example::jobs(&QUEUES, 1_000);
    assert!(report().to_html() == report().to_html());
    assert!(report().to_json() == report().to_json());
}

#[test]
fn a_million_jobs_are_no_larger_than_a_few() {
    let usual = example::jobs(&QUEUES, 5_000).to_html().len();
    let large = example::jobs(&QUEUES, 250_000).to_html().len();
    assert!(usual < 1_000_000, "{usual}");
    assert!(large < 1_000_000, "{large}");
}

#[test]
fn a_browser_draws_it() {
    for (name, report) in [
        ("jobs", example::jobs(&QUEUES, 5_000)),
        ("hostile", example::jobs(&example::HOSTILE, 2_000)),
        ("openb", example::openb()),
    ] {
        let page = report.to_html();
        let Some(drawn) = browser::open(name, &page) else {
            return;
        };
        check_drawn(&drawn, &report);
    }
}

/// What must be in the document after the scripts have run.
fn check_drawn(drawn: &str, report: &Report) {
    let body = drawn.split_once("<body").unwrap().1;
    let (before, after) = body.split_once(DATA).unwrap();
    let drawn = format!("{before}{}", after.split_once("</script>").unwrap().1);
    let (drawn, _) = drawn.split_once("<script>").unwrap();
    for panel in &report.panels {
        assert!(
            drawn.contains(&format!("<h2>{}</h2>", panel.title)),
            "{}",
            panel.title
        );
    }
    assert!(count(drawn, "<svg") >= report.panels.len());
    assert!(count(drawn, " d=\"m") >= report.panels.len());
    assert!(count(drawn, "<tr>") > report.tables.len());
    assert_eq!((count(drawn, "nan"), count(drawn, "infinity")), (0, 0));
    assert_eq!(count(drawn, "undefined"), 0);
}
