#include "load/cpu_watch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::bench {
namespace {
uint64_t ticks_to_ns(uint64_t ticks) {
  return ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

uint64_t stat_ns(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t after_name = text.rfind(')');  // the name may hold blanks
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  fields >> user >> system;
  return ticks_to_ns(user + system);
}
}  // namespace

// Per thread, because /proc/PID/schedstat is that of the first thread only. Kernel workers of a
// process's io_uring are among its tasks.
CpuWatch::Threads CpuWatch::read_threads() const {
  Threads threads;
  for (const int pid : pids_) {
    std::error_code error;
    const std::string dir = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
      std::ifstream file(entry.path() / "schedstat");
      Thread t;
      if (file >> t.run_ns >> t.wait_ns >> t.slices) {
        threads[std::atoi(entry.path().filename().c_str())] = t;
      }
    }
  }
  return threads;
}

uint64_t CpuWatch::read_stat_ns() const {
  uint64_t all = 0;
  for (const int pid : pids_) all += stat_ns(pid);
  return all;
}

CoreUse CpuWatch::read_core() const {
  std::ifstream file("/proc/stat");
  const std::string name = "cpu" + std::to_string(core_);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string label;
    uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    fields >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    if (label != name) continue;
    return {.busy_ns = ticks_to_ns(user + nice + system + irq + softirq),
            .softirq_ns = ticks_to_ns(softirq),
            .steal_ns = ticks_to_ns(steal)};
  }
  return {};
}

void CpuWatch::start() {
  if (!watching()) return;
  core_at_start_ = read_core();
  stat_at_start_ = read_stat_ns();
  threads_at_start_ = read_threads();
}

void CpuWatch::stop() {
  if (!watching()) return;
  processes_ = {};
  for (const auto& [id, now] : read_threads()) {
    const Thread then = threads_at_start_[id];  // a thread born since then counts in full
    processes_.run_ns += now.run_ns - then.run_ns;
    processes_.wait_ns += now.wait_ns - then.wait_ns;
    processes_.slices += now.slices - then.slices;
  }
  processes_.stat_ns = read_stat_ns() - stat_at_start_;
  const CoreUse now = read_core();
  core_use_ = {.busy_ns = now.busy_ns - core_at_start_.busy_ns,
               .softirq_ns = now.softirq_ns - core_at_start_.softirq_ns,
               .steal_ns = now.steal_ns - core_at_start_.steal_ns};
}

}  // namespace sluice::bench
