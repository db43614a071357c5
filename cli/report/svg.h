// A small writer of SVG. Colours and fonts are classes of style.h, so that a drawing follows the
// reader's light or dark theme; every text is escaped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace convoy::cli {

/// Text for HTML and SVG, between tags and in quoted attributes; control characters and bytes that
/// are no UTF-8 become \xNN.
std::string escape(std::string_view text);

/// A coordinate: at most two digits after the point.
std::string coordinate(double value);

struct Point {
  double x = 0;
  double y = 0;
};

struct Rect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// ` name="value"`, escaped.
std::string attribute(std::string_view name, std::string_view value);

class Svg {
 public:
  /// `id` is unique on the page; `title` and `description` are read aloud.
  Svg(std::string id, double width, double height, std::string title, std::string description);

  /// `tip`, where given, is shown under the mouse. `more` are attributes, escaped already.
  void rect(const Rect& rect, std::string_view style, std::string_view tip = {},
            std::string_view more = {});
  void line(Point from, Point to, std::string_view style);
  void polyline(std::span<const Point> points, std::string_view style);
  void circle(Point centre, double radius, std::string_view style, std::string_view tip = {});
  void text(Point at, std::string_view text, std::string_view style = {});

  void set_height(double height) { height_ = height; }
  /// For a page that has the styles.
  std::string markup() const;
  /// For a file of its own.
  std::string file() const;

 private:
  std::string head(std::string_view more) const;
  void close(std::string_view name, std::string_view tip);

  std::string id_;
  double width_;
  double height_;
  std::string title_;
  std::string description_;
  std::string body_;
};

}  // namespace convoy::cli
