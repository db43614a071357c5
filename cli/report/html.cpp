#include "cli/report/html.h"

#include <fmt/format.h>

#include "cli/report/style.h"
#include "cli/report/svg.h"

namespace convoy::cli {
namespace {

std::string class_of(std::string_view style) {
  return style.empty() ? std::string() : attribute("class", style);
}

std::string cell_markup(const Cell& cell, bool heading) {
  const char* tag = heading ? "th" : "td";
  std::string text = escape(cell.text);
  if (!cell.second.empty()) text += "<i>" + escape(cell.second) + "</i>";
  return fmt::format("<{0}{1}{2}>{3}</{0}>", tag, heading ? " scope=\"row\"" : "", cell.more, text);
}

const char* width_style(FigureWidth width) {
  switch (width) {
    case FigureWidth::column:
      return "";
    case FigureWidth::middle:
      return " middle";
    case FigureWidth::wide:
      return " wide";
  }
  return "";
}

std::string head_markup(const Table& table) {
  std::string cells;
  for (const std::string& text : table.head) {
    cells += "<th scope=\"col\">" + escape(text) + "</th>";
  }
  return cells.empty() ? cells : "<thead><tr>" + cells + "</tr></thead>\n";
}

}  // namespace

std::string table_markup(const Table& table) {
  std::string rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    rows += "<tr" + class_of(row < table.row_styles.size() ? table.row_styles[row] : "") + ">";
    for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
      rows += cell_markup(table.rows[row][i], i == 0);
    }
    rows += "</tr>\n";
  }
  return fmt::format(
      "<div "
      "class=\"scroll\"><table{}><caption><span>{}</span></caption>\n{}<tbody>\n{}</tbody></"
      "table></div>\n",
      class_of(table.style), escape(table.caption), head_markup(table), rows);
}

std::string details_markup(std::string_view summary, const std::string& markup) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(summary), markup);
}

std::string figure_markup(const Figure& figure) {
  return fmt::format(
      "<figure><div class=\"scroll{}\">{}</div>{}<figcaption>{}</figcaption>{}</figure>\n",
      width_style(figure.width), figure.svg_markup, figure.legend_markup, escape(figure.caption),
      details_markup("Numbers", table_markup(figure.numbers)));
}

std::string paragraph(std::string_view text, std::string_view style) {
  return fmt::format("<p{}>{}</p>\n", class_of(style), escape(text));
}

std::string heading(int level, std::string_view text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, escape(text));
}

std::string page(std::string_view title, const std::string& body_markup) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style></head>\n<body><main>\n{}</main></body></html>\n",
      escape(title), chart_style(), page_style(), body_markup);
}

}  // namespace convoy::cli
