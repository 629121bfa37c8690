# SPDX-License-Identifier: Apache-2.0
"""Each system call of a sandbox's set-up is made to fail once, without exception: test_injected_faults.py tries some."""
import unittest

import test_injected_faults


class AllInjectedFaults(test_injected_faults.InjectedFaults):
    every = 1


del test_injected_faults  # whose own tests would run here too

if __name__ == "__main__":
    unittest.main()
