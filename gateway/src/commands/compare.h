// Common code of commands that compare blocks with data from the initiator.
#pragma once

#include <optional>

#include "commands/command.h"

namespace sluice::lun {

// The offset of the first byte at which `medium` differs from data_out at `skip`; nullopt: equal.
// `medium` contains `length` bytes; data_out contains at least skip + length bytes.
std::optional<uint64_t> first_difference(const std::vector<Slice>& medium,
                                         const std::vector<Slice>& data_out, uint64_t skip,
                                         uint64_t length);

// Ends with 0E/1D/00 MISCOMPARE DURING VERIFY OPERATION; INFORMATION is the offset in the data-out
// buffer (SBC-4 §5.3, §4.9).
void finish_miscompare(Command& command, uint64_t offset);

}  // namespace sluice::lun
