// Colours and type of a report, light, dark and printed. The palette is one that colour-blind eyes
// tell apart (Okabe and Ito); colour is never the only sign.
#pragma once

#include <string>

namespace convoy::cli {

/// What drawings need, in a page or in a file of their own.
std::string chart_style();
/// What the page needs besides.
std::string page_style();

/// Series of a chart have colours s0 to s5, over and over.
inline constexpr int kSeriesColours = 6;

}  // namespace convoy::cli
