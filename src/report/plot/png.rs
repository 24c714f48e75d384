//! PNG images, rendered from the SVG text with a font that the program carries.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::base::error::{Error, Result};

/// Pixels of the image per pixel of the figure.
const ZOOM: f32 = 2.0;

/// The image of an SVG figure. Fonts of the system play no part: the same bytes on every machine.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let failed =
        |what: &dyn std::fmt::Display| Error::run(format!("cannot draw the image: {what}"));
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    for (_, font) in super::style::embedded_fonts() {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(&e))?;
    let size = tree.size().to_int_size().scale_by(ZOOM).ok_or_else(|| failed(&"it is empty"))?;
    let mut image = Pixmap::new(size.width(), size.height())
        .ok_or_else(|| Error::memory("the image needs more memory than there is"))?;
    resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut image.as_mut());
    image.encode_png().map_err(|e| failed(&e))
}
