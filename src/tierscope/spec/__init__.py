"""What the user writes: workload, system, placement, sweep; YAML to checked, frozen specs and back."""
