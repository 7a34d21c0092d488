// The name of an image: `pool/image` or `pool/namespace/image`, as the rbd program writes it.
#pragma once

#include <string>

namespace sluice::rbd {

struct ImageName {
  std::string pool;
  std::string space;  // namespace; empty: the pool's default
  std::string image;

  // `text` must have passed backend::validate().
  static ImageName parse(const std::string& text) {
    const size_t first = text.find('/');
    const size_t last = text.rfind('/');
    ImageName name{text.substr(0, first), "", text.substr(last + 1)};
    if (last != first) name.space = text.substr(first + 1, last - first - 1);
    return name;
  }
};

}  // namespace sluice::rbd
