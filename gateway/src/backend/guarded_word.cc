#include "backend/guarded_word.h"

#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <csignal>

namespace sluice::backend {
namespace {

// The word at which this thread may fault, and where it then continues. Empty outside of accesses.
struct Guard {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool unblocked = false;  // this thread does not block SIGBUS
};

constinit thread_local Guard t_guard;
thread_local sigjmp_buf t_escape;
struct sigaction g_previous;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0)
    return g_previous.sa_sigaction(signal, info, context);
  const bool sent = info->si_code <= 0;  // sent by kill(), not caused by a fault
  if (g_previous.sa_handler == SIG_IGN && sent) return;
  if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    return g_previous.sa_handler(signal);
  }
  std::signal(SIGBUS, SIG_DFL);
  // A fault repeats itself, and the faulting instruction is then on top of the core file's stack.
  if (sent) raise(SIGBUS);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code > 0 && at >= t_guard.begin && at < t_guard.end) {
    t_guard.end = t_guard.begin = 0;
    // Restores the signal mask as a return would; the handler may have blocked more than SIGBUS.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(t_escape, 1);
  }
  pass_on(signal, info, context);
}

// A blocked SIGBUS would end the process at the fault. Programs that use a signalfd usually block
// all signals in their threads.
void unblock() {
  sigset_t bus;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
  t_guard.unblocked = true;
}

// Separate functions: values in registers across a sigsetjmp are undefined after a jump.
[[gnu::noinline]] void load(const uint64_t* word, uint64_t* value) {
  *value = *static_cast<const volatile uint64_t*>(word);
}

[[gnu::noinline]] void store(uint64_t* word, uint64_t* value) {
  *static_cast<volatile uint64_t*>(word) = *value;
}

template <typename Word>
bool guarded(void (*access)(Word*, uint64_t*), Word* word, uint64_t* value) {
  if (!t_guard.unblocked) unblock();
  // Without the signal mask, which would need a system call: the handler restores it.
  if (sigsetjmp(t_escape, 0) != 0) return false;
  t_guard.begin = reinterpret_cast<uintptr_t>(word);
  t_guard.end = t_guard.begin + sizeof *word;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access(word, value);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_guard.end = t_guard.begin = 0;
  return true;
}

}  // namespace

void install_word_guard() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &g_previous) == 0;
  }();
  static_cast<void>(installed);
}

std::optional<uint64_t> load_guarded(const uint64_t* word) {
  uint64_t value = 0;
  if (!guarded(&load, word, &value)) return std::nullopt;
  return value;
}

bool store_guarded(uint64_t* word, uint64_t value) { return guarded(&store, word, &value); }

}  // namespace sluice::backend
