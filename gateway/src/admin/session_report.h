// The output of `sluice-gateway sessions`: every live session with its negotiated values.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "iscsi/session_view.h"

namespace sluice::admin {

// A JSON array, one object per session, in one line.
std::string sessions_json(const std::vector<iscsi::SessionView>& sessions);

// Formats that JSON as two tables: sessions with their counters, then the negotiated values.
Result<std::string> sessions_table(const std::string& json);

}  // namespace sluice::admin
