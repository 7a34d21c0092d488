// For tests: sense data as "asc/ascq [cdb ]byte.bit", or "ok" for an outcome that isn't one.
#pragma once

#include <cstdio>
#include <string>

#include "scsi/outcome.h"

namespace sluice::scsi {

inline std::string text_of(const Sense& s) {
  char text[64];
  std::snprintf(text, sizeof text, "%02x/%02x", s.asc, s.ascq);
  std::string out = text;
  if (s.specific == Sense::Specific::kFieldPointer) {
    out += (s.in_cdb ? " cdb " : " ") + std::to_string(s.pointer);
    if (s.bit_valid) out += "." + std::to_string(s.bit);
  }
  if (s.has_information) out += " info " + std::to_string(s.information);
  return out;
}

template <class T>
std::string refusal_of(const Outcome<T>& outcome) {
  return outcome.ok() ? "ok" : text_of(outcome.sense());
}

}  // namespace sluice::scsi
