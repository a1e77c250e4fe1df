#pragma once

#include <string>
#include <vector>

namespace ptrain::report {

struct Point {
  double x = 0, y = 0;
};

// A line, or dots. Points with a NaN leave a gap.
struct Series {
  std::string name;
  std::string css;  // class that gives it its colour: one of style.cc
  std::vector<Point> points;
  bool dots = false;
};

// A line across the chart at an x, with a word.
struct Mark {
  double x = 0;
  std::string name;
};

struct Chart {
  std::string title;
  std::string unit;
  std::string x_name = "step";
  std::vector<Series> series;
  std::vector<Mark> marks;
  bool from_zero = false;                 // the y axis begins at 0
  std::string (*text)(double) = nullptr;  // of a y value
};

// A figure: SVG for the lines, HTML for all words, so that these keep their size when the width
// changes. Where there is no point it says so.
std::string to_html(const Chart& chart);

}  // namespace ptrain::report
