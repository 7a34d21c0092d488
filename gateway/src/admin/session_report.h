// What `sluice-gateway sessions` shows: every live session and all that it negotiated.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "iscsi/session_view.h"

namespace sluice::admin {

// A JSON array, one object per session, in one line.
std::string sessions_json(const std::vector<iscsi::SessionView>& sessions);

// Two tables from that JSON: who is logged in and what was done, then what was negotiated.
Result<std::string> sessions_table(const std::string& json);

}  // namespace sluice::admin
