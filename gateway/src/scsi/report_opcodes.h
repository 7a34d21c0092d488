// REPORT SUPPORTED OPERATION CODES (SPC-5 §6.34) and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
// (SPC-5 §6.35), both generated: the first from the command table.
#pragma once

#include "base/bytes.h"
#include "scsi/command_table.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

inline constexpr size_t kMaxReportOpcodes = 4096;  // bytes; no answer is longer

Outcome<size_t> build_report_opcodes(ByteView cdb, const Support& support, MutableBytes out);

struct TaskManagementSupport {
  bool abort_task = true;
  bool abort_task_set = true;
  bool clear_aca = false;
  bool clear_task_set = true;
  bool lu_reset = true;
  bool query_task = true;
  bool query_async_event = true;
  bool query_task_set = true;
  bool it_nexus_reset = true;
};

size_t build_report_task_management(ByteView cdb, const TaskManagementSupport& support,
                                    MutableBytes out);

}  // namespace sluice::scsi
