#include "control/grpc_log.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace sluice::control {
namespace {

TEST(GrpcLog, ItsLinesAreStructuredLinesOfTheLogAndRepetitionsAreSuppressed) {
  std::vector<std::string> lines;
  std::mutex mutex;
  log::start({.level = log::Level::kInfo,
              .format = log::Format::kJson,
              .sink = [&](std::string_view line) {
                const std::lock_guard lock(mutex);
                lines.emplace_back(line);
              }});
  log_grpc_lines();
  gpr_log_verbosity_init();  // as the first use of gRPC does
  for (int i = 0; i < 50; ++i) {
    gpr_log("/build/src/core/subchannel.cc", 7, GPR_LOG_SEVERITY_ERROR, "attempt %d\nfailed", i);
  }
  log::stop();
  log::start({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(R"("level":"warning","msg":"gRPC","at":"subchannel.cc:7",)"
                          R"("text":"attempt 0\nfailed"})"),
            std::string::npos)
      << lines[0];
}

}  // namespace
}  // namespace sluice::control
