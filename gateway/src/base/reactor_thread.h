// Marks the threads of reactors, for code that both a reactor and other threads run: only others
// may make a call that waits for a device (DESIGN R14).
//
// Threads: each sees its own mark.
#pragma once

namespace sluice {

class ReactorThread {
 public:
  // The calling thread is a reactor's until the end of the object.
  ReactorThread() { t_is_reactor = true; }
  ~ReactorThread() { t_is_reactor = false; }
  ReactorThread(const ReactorThread&) = delete;
  ReactorThread& operator=(const ReactorThread&) = delete;

  static bool is_present() { return t_is_reactor; }

 private:
  static inline constinit thread_local bool t_is_reactor = false;
};

}  // namespace sluice
