#include "net/ring.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace sluice::net {
namespace {

std::string read_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

int seccomp_mode() {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("Seccomp:", 0) == 0) return std::atoi(line.c_str() + 8);
  }
  return 0;
}

}  // namespace

std::string explain_refusal(int error, const std::string& disabled, int seccomp,
                            const std::string& kernel_release) {
  switch (error) {
    case EPERM:
    case EACCES:
      if (disabled == "2" || disabled == "1") {
        return fmt::format(
            "io_uring is switched off by kernel.io_uring_disabled={}; run "
            "`sysctl kernel.io_uring_disabled=0`{}",
            disabled,
            disabled == "1" ? " or add the gateway's group to kernel.io_uring_group" : "");
      }
      if (seccomp == 2) {
        return "io_uring is blocked by a seccomp filter (container runtimes do this by default); "
               "allow io_uring_setup, io_uring_enter and io_uring_register in its profile";
      }
      return "io_uring is not permitted (a security module such as SELinux or AppArmor may deny "
             "it); allow it for sluice-gateway";
    case ENOSYS:
      if (seccomp == 2) {
        return "io_uring is hidden by a seccomp filter (container runtimes do this by default); "
               "allow io_uring_setup, io_uring_enter and io_uring_register in its profile";
      }
      return fmt::format(
          "this kernel ({}) has no io_uring; the gateway needs Linux 6.1 or newer with "
          "CONFIG_IO_URING",
          kernel_release);
    case ENOMEM:
      return "io_uring may not lock enough memory (RLIMIT_MEMLOCK); raise it with "
             "`ulimit -l unlimited` or LimitMEMLOCK=infinity in the systemd unit";
    case EINVAL:
      return fmt::format(
          "this kernel ({}) is too old for what the gateway asks of io_uring; it needs Linux 6.1 "
          "or newer",
          kernel_release);
    case EMFILE:
    case ENFILE:
      return "no file descriptor is left for io_uring (RLIMIT_NOFILE); raise it with `ulimit -n` "
             "or LimitNOFILE= in the systemd unit";
    default:
      return fmt::format("io_uring could not be set up: {}", std::strerror(error));
  }
}

Result<RingFeatures> open_ring(io_uring* ring, unsigned entries) {
  // Best first; each step down loses a little speed and nothing else.
  constexpr unsigned kFlagSets[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
                                    IORING_SETUP_COOP_TASKRUN, 0};
  int error = 0;
  for (const unsigned flags : kFlagSets) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = entries * 8;
    error = -io_uring_queue_init_params(entries, ring, &params);
    if (error == 0) {
      RingFeatures f;
      f.single_issuer = flags & IORING_SETUP_SINGLE_ISSUER;
      f.defer_taskrun = flags & IORING_SETUP_DEFER_TASKRUN;
      return f;
    }
    if (error != EINVAL) break;
  }
  utsname name{};
  uname(&name);
  return Error{explain_refusal(error, read_line("/proc/sys/kernel/io_uring_disabled"),
                               seccomp_mode(), name.release)};
}

Submission submission_of(int result) {
  switch (-result) {
    case EINTR:
    case EAGAIN:
    case EBUSY:
    case ENOMEM:
      return Submission::kRetry;
    default:
      return result < 0 ? Submission::kFailed : Submission::kDone;
  }
}

}  // namespace sluice::net
