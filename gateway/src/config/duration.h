// Durations in text form: a whole number and a unit, "1500ms", "15s", "2m", "50us".
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace sluice::config {

Result<Nanos> parse_duration(std::string_view text);
// The shortest exact form: 1500000000 -> "1500ms". Fractions of a microsecond are dropped.
std::string format_duration(Nanos nanos);

}  // namespace sluice::config
