#include "cli/report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/report/style.h"
#include "engine/io/text.h"

namespace convoy::cli {

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, escape(value));
}

Svg::Svg(std::string id, double width, double height, std::string title, std::string description)
    : id_(std::move(id)),
      width_(width),
      height_(height),
      title_(std::move(title)),
      description_(std::move(description)) {}

void Svg::close(std::string_view name, std::string_view tip) {
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escape(tip), name);
}

void Svg::rect(const Rect& rect, std::string_view style, std::string_view tip,
               std::string_view more) {
  body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}"{}{})", coordinate(rect.x),
                       coordinate(rect.y), coordinate(rect.width), coordinate(rect.height),
                       attribute("class", style), more);
  close("rect", tip);
}

void Svg::line(Point from, Point to, std::string_view style) {
  body_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}"{})", coordinate(from.x),
                       coordinate(from.y), coordinate(to.x), coordinate(to.y),
                       attribute("class", style));
  close("line", {});
}

void Svg::polyline(std::span<const Point> points, std::string_view style) {
  std::string list;
  for (const Point& point : points) {
    list +=
        fmt::format("{}{},{}", list.empty() ? "" : " ", coordinate(point.x), coordinate(point.y));
  }
  body_ += fmt::format(R"(<polyline points="{}"{})", list, attribute("class", style));
  close("polyline", {});
}

void Svg::circle(Point centre, double radius, std::string_view style, std::string_view tip) {
  body_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}"{})", coordinate(centre.x),
                       coordinate(centre.y), coordinate(radius), attribute("class", style));
  close("circle", tip);
}

void Svg::text(Point at, std::string_view text, std::string_view style) {
  body_ += fmt::format(R"(<text x="{}" y="{}"{}>{}</text>)", coordinate(at.x), coordinate(at.y),
                       style.empty() ? "" : attribute("class", style), escape(text));
  body_ += '\n';
}

std::string Svg::head(std::string_view more) const {
  return fmt::format(
      "<svg{0} viewBox=\"0 0 {1} {2}\" role=\"img\" aria-labelledby=\"{3}-t {3}-d\">\n"
      "<title id=\"{3}-t\">{4}</title>\n<desc id=\"{3}-d\">{5}</desc>\n",
      more, coordinate(width_), coordinate(height_), escape(id_), escape(title_),
      escape(description_));
}

std::string Svg::markup() const {
  return head("") + body_ + "</svg>\n";
}

std::string Svg::file() const {
  const std::string size =
      fmt::format(R"( xmlns="http://www.w3.org/2000/svg" class="chart" width="{}" height="{}")",
                  coordinate(width_), coordinate(height_));
  return head(size) + fmt::format("<style>{}</style>\n", chart_style()) + body_ + "</svg>\n";
}

}  // namespace convoy::cli
