// Pieces of the page: tables, figures, the frame around all. Texts given here are plain; markup is
// named so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::cli {

struct Cell {
  Cell(std::string its_text) : text(std::move(its_text)) {}  // NOLINT: a text is a cell
  Cell(const char* its_text) : text(its_text) {}             // NOLINT
  Cell(std::string its_text, std::string its_second, std::string its_more)
      : text(std::move(its_text)), second(std::move(its_second)), more(std::move(its_more)) {}

  std::string text;
  std::string second;  ///< a softer line below
  std::string more;    ///< attributes, escaped already
};

/// The first cell of a row is its heading.
struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> row_styles = {};  ///< of the rows at the front
  std::string style = {};
};

std::string table_markup(const Table& table);

/// `wide` scrolls sideways on a narrow screen, `middle` shrinks to it but does not fill a wide one.
enum class FigureWidth { column, middle, wide };

/// A drawing with what stands below it; `numbers` opens on a click.
struct Figure {
  std::string svg_markup;
  std::string caption;
  Table numbers;
  FigureWidth width = FigureWidth::column;
  std::string legend_markup = {};
};

std::string figure_markup(const Figure& figure);
std::string details_markup(std::string_view summary, const std::string& markup);
std::string paragraph(std::string_view text, std::string_view style = {});
std::string heading(int level, std::string_view text);
/// A whole file that loads nothing.
std::string page(std::string_view title, const std::string& body_markup);

}  // namespace convoy::cli
