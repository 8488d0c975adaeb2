"""Critical paths as the timeline draws them: of one worker (path_slices), and across ranks (path_across_slices)."""
